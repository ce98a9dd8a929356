h AS (SELECT p.ord, p.version, p.version AS have FROM p)
