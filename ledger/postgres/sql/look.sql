-- The state of the database and nothing else.
WITH {guard} SELECT {state} FROM g
