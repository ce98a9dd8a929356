SELECT s.type || ' ' || s.name || ' on ' || s.tbl_name FROM sqlite_schema AS s
WHERE s.type = 'trigger' AND s.tbl_name LIKE 'ledger\_%' ESCAPE '\'
ORDER BY 1
