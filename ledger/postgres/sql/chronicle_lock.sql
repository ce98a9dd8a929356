-- Every statement that adds an event or files a paper takes the lock of the last of
-- these tables when it begins, before it sees anything: who comes after this one
-- knows what it has changed, and who came before has left all there is to be found.
-- A program of the version before takes the locks of the others alone.
LOCK TABLE @ledger_writes, @ledger_papers, @ledger_unsealed IN SHARE ROW EXCLUSIVE MODE
