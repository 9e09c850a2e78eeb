"""The evidence: benchmark problems, what each scenario hides of them, campaigns of many runs, and the tables and pictures
that come of them."""
