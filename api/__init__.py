"""Machines: tools declared once, and the doors that speak them. Translates, decides nothing."""
