-- These writes hold their business operation no more.
UPDATE @ledger_writes SET holds = FALSE WHERE id = ANY ($1::text[]) AND holds
