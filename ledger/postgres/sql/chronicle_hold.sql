-- Nobody switches sealing on from here on until this transaction ends: what it finds
-- unsealed, and nothing more, is not to be forgotten.
LOCK TABLE @ledger_writes, @ledger_unsealed IN ROW EXCLUSIVE MODE
