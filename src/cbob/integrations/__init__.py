"""Other people's tools, served: each room here is one optional extra and is imported only when it is asked for."""
