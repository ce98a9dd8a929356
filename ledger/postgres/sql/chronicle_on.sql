UPDATE @ledger_meta SET chronicle = TRUE, compatible_from = greatest(compatible_from, $1::int),
	found = '', found_tenant = '', found_kind = '', found_paper = ''
