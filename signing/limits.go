package signing

const (
	// MaxPayload bounds what is signed, in bytes: a statement with all values of
	// an observation, which has at most a few megabytes, and room.
	MaxPayload = 8 << 20
	// MaxEnvelope bounds an envelope that is read, in bytes: the largest payload in
	// base64, and room for the rest.
	MaxEnvelope = MaxPayload/3*4 + 64<<10
	// maxKeyFile bounds one PEM text that is read, in bytes. A key has some hundred;
	// a list of all that were ever in use fits.
	maxKeyFile = 64 << 10
	// maxKeys bounds how many public keys are trusted at once: years of rotation.
	maxKeys = 100
	// maxType bounds the name of a payload type, in bytes: a media type.
	maxType = 255
	// clipped is how much of a text from outside an error repeats, in bytes.
	clipped = 80
)
