-- The next portion of papers is found, in the order of their names.
WITH x AS MATERIALIZED (SELECT p.tenant, p.kind, p.id FROM @ledger_papers AS p
	WHERE (p.tenant, p.kind, p.id) > ($1::text, $2::text, $3::text) ORDER BY p.tenant, p.kind, p.id LIMIT $4::bigint),
r AS (INSERT INTO @ledger_unsealed (mark)
	SELECT json_build_object('kind', 'found', 'tenant', x.tenant, 'paper_kind', x.kind, 'paper_id', x.id)::text
	FROM x WHERE x.kind <> $5::text ORDER BY x.tenant, x.kind, x.id),
l AS (SELECT x.tenant, x.kind, x.id FROM x WHERE (SELECT count(*) FROM x) >= $4::bigint ORDER BY x.tenant DESC, x.kind DESC, x.id DESC LIMIT 1)
UPDATE @ledger_meta SET (found_tenant, found_kind, found_paper) = (SELECT l.tenant, l.kind, l.id FROM l)
