"""The paper's experiments, each one command: ``python -m experiments fig5``."""
