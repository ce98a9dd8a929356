package sealed

// maxBody bounds an opened document in bytes: the ledger accepts no larger one, and a small
// compressed body must not decompress to an unbounded one.
const maxBody = 1 << 20
