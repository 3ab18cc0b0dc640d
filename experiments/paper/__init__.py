"""Figures 2 to 5 of Manegueu, Vernade, Carpentier and Valko (2020), and its theorems at work."""
