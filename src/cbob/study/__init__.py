"""Studies: real evaluations, isolated, stored, parallel and resumed. Needs the extra `study`."""
