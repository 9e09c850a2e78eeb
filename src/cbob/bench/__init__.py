"""The evidence: benchmark problems, what each scenario hides of them, and campaigns of many runs."""
