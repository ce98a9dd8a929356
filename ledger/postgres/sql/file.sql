-- Papers as they are filed, if each is of the version that is named. Those of
-- a filing are locked in one order, those that are only to stay as they are for
-- others that say the same; what is in nobody's way waits for nobody.
WITH {guard}{papers}{filed}
SELECT {state}, ARRAY[]::text[], ARRAY[]::bigint[]{answer} FROM g
