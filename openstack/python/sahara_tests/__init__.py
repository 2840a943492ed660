"""Tests with Sahara's own code. It registers options under the names of Heat's, so it needs a process of its own."""
