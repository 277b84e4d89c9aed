"""On which coefficients a round works: some columns of the data, or all of them."""
