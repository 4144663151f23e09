-- The schema that holds everything, and the one row that says which version is installed.
create schema parley;
