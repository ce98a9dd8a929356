package receipt

const (
	// maxNames bounds how many people a receipt names. More never approve one write.
	maxNames = 32
	// digestLength is that of a SHA-256 in hex.
	digestLength = 64
	// clipped is how much of a text from outside an error repeats, in bytes.
	clipped = 80
)
