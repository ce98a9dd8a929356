-- Nobody switches sealing on from here on until this transaction ends: what it finds
-- unsealed, and nothing more, is not to be forgotten. In the order in which whoever
-- switches it on takes these locks: neither waits for the other with one of them.
LOCK TABLE @ledger_writes, @ledger_papers, @ledger_unsealed IN ROW EXCLUSIVE MODE
