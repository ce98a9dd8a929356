package sealed

// maxBody bounds an opened paper in bytes: the ledger takes no larger one, and
// what is packed small must not unpack to anything.
const maxBody = 1 << 20
