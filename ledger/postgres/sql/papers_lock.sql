-- Papers of a filing, for this transaction alone.
WITH {guard}{papers}
SELECT {state}, ARRAY(SELECT h.have FROM h ORDER BY h.ord) FROM g
