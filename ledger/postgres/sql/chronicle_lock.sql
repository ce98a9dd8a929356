-- Every statement that adds an event or files a paper takes the lock of this
-- table when it begins, before it sees anything: who comes after this one knows
-- what it has changed, and who came before has left all there is to be found.
LOCK TABLE @ledger_unsealed IN SHARE ROW EXCLUSIVE MODE
