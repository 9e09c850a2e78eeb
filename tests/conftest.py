"""Its place puts `tests` on the import path, so that tests in any folder find the oracles in `reference`."""
