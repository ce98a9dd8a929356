package s3

import "github.com/readback-go/readback/connectors"

// Where the claims are known from.
const (
	sourceWrites  = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html"
	sourceDeletes = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-deletes.html"
	sourceStrong  = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel"
	sourceGet     = "https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html"
	sourcePut     = "https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html"
	sourceErrors  = "https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html"
	sourceMarkers = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/DeleteMarker.html"
	sourceOwn     = "this package"
)

// Sheets is what is known about objects, with the default options.
func Sheets() []connectors.Sheet {
	profile := (&Connector{}).Profiles()[Kind]
	profile.Kind = Kind
	return []connectors.Sheet{{Name: "s3-object", System: "S3", Kind: Kind, Type: "s3", Profile: profile, Claims: []connectors.Claim{
		{About: connectors.TopicNative, Says: "None by a key of ours: the conditions below do it.", Source: sourcePut},
		{About: connectors.TopicLookup, Says: "GET by the object's key, one call. The stamp is in the metadata, x-amz-meta-readback. An object that was copied with its metadata to another key is not found.", Source: sourceGet},
		{About: connectors.TopicLookup, Says: "404 with NoSuchKey is absence, also with a delete marker. Without the right s3:ListBucket S3 answers 403 for a missing object, which is never taken for absence; the check of the connection reports the missing right.", Source: sourceGet},
		{About: connectors.TopicStrong, Says: "S3 reads are strong after each PUT and DELETE.", Source: sourceStrong},
		{About: connectors.TopicStrong, Says: "A store of another vendor reads as strongly. One that replicates between sites may not.", Source: sourceOwn, Assumed: true},
		{About: connectors.TopicLagging, Says: "None is used: lists are not read.", Source: sourceStrong},
		{About: connectors.TopicSettle, Says: "None: reads are strong.", Source: sourceStrong},
		{About: connectors.TopicSettle, Says: "A verified object is read again after 15 minutes, since a store can lose what it acknowledged.", Source: sourceOwn, Assumed: true},
		{About: connectors.TopicHorizon, Says: "S3 refuses a request whose signed time differs by more than 15 minutes from its own (RequestTimeTooSkewed).", Source: sourceErrors},
		{About: connectors.TopicHorizon, Says: "30 minutes, since our clock may be 15 minutes ahead.", Source: sourceOwn, Assumed: true},
		{About: connectors.TopicConditional, Says: "An update and a delete carry If-Match with the ETag that was read: 412 if it differs, 404 if the object is gone. 409 ConditionalRequestConflict means that another write was at work, and is sent again.", Source: sourceWrites + " ; " + sourceDeletes},
		{About: connectors.TopicConditional, Says: "An ETag is of the content. A change of metadata alone in the moment between our read and our send is not noticed. An object that another actor set back is known by Last-Modified, and is not changed by a repeat. An update that leaves the content as it is is refused by the connector, since the condition would protect nothing.", Source: sourcePut},
		{About: connectors.TopicConditional, Says: "A store of another vendor may ignore If-Match on a delete, and an old one every condition. Try both on yours.", Source: sourceOwn, Assumed: true},
		{About: connectors.TopicUnique, Says: "A create carries If-None-Match: *. It is 412 if there is an object, so a repeat makes none.", Source: sourceWrites},
		{About: connectors.TopicUndo, Says: "A created object is deleted, a changed or deleted one is written as it was, up to 1 MiB.", Source: sourceOwn},
		{About: connectors.TopicIrreversible, Says: "In a bucket without versions the object of before is gone. Notifications and replication run at once.", Source: sourceMarkers},
		{About: connectors.TopicValues, Says: "content is a text, content_base64 other bytes; both are compared to the byte. Names of metadata are in small letters, values printable ASCII. An update keeps the metadata and headers that it does not name; tags, access lists and the storage class are those of a new object.", Source: sourcePut},
		{About: connectors.TopicLimits, Says: "1 MiB for an object that readback writes or compares, 2 KB of metadata with the stamp. 503 SlowDown is read back before a repeat: MinIO gives it when too few of its disks took the write.", Source: sourceOwn, Assumed: true},
	}}}
}
