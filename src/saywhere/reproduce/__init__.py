"""The papers' experiments, run anew: each trains its rows, checks each claim and writes a report."""
