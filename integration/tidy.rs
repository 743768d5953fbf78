//! The rings of the house.
