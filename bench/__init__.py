"""Measurements: what a call costs, as ratios within one run, since machines are shared and noisy."""
