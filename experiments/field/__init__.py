"""The field's policies side by side on many delays, and what their papers say of them."""
