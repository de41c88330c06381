"""Several connections that apply transactions in parallel, in the order that their keys require."""
