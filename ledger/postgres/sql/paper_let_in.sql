DELETE FROM @ledger_papers WHERE tenant = $1::text AND kind = $2::text AND id = $3::text AND version = 0
