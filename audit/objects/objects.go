package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/signing"
)

// Options of a [Keeper]. Endpoint and Bucket are required.
type Options struct {
	// Endpoint is the host of the store, and its port where that is not the usual
	// one: s3.eu-central-1.amazonaws.com.
	Endpoint string
	// Bucket must be there. Prefix begins the names of objects. Default none.
	Bucket, Prefix string
	// Region of the bucket. Default: the store is asked.
	Region string
	// AccessKey and SecretKey are who asks. They need the right to put objects, and
	// no other. Default: nobody.
	AccessKey, SecretKey string
	// Insecure speaks HTTP without TLS. Default false.
	Insecure bool
	// Transport carries requests. Default [http.DefaultTransport].
	Transport http.RoundTripper
}

// ErrOptions says that settings are missing.
var ErrOptions = errors.New("object store")

// Keeper keeps each head as an object of its own, whose name says the tenant's
// digest, the page and the beginning of its hash, and which it never overwrites.
type Keeper struct {
	client         *minio.Client
	bucket, prefix string
}

var _ audit.Keeper = (*Keeper)(nil)

// New returns a keeper. It asks nothing of the store. It fails with [ErrOptions].
func New(o Options) (*Keeper, error) {
	if o.Endpoint == "" || o.Bucket == "" {
		return nil, fmt.Errorf("%w: endpoint is %q and bucket is %q; want both", ErrOptions, o.Endpoint, o.Bucket)
	}
	if (o.AccessKey == "") != (o.SecretKey == "") {
		return nil, fmt.Errorf("%w: want an access key and a secret key, or neither", ErrOptions)
	}
	client, err := minio.New(o.Endpoint, &minio.Options{
		Creds: credentials.NewStaticV4(o.AccessKey, o.SecretKey, ""), Secure: !o.Insecure, Region: o.Region,
		Transport: o.Transport, MaxRetries: 1, // the keeper is asked again
	})
	if err != nil {
		return nil, fmt.Errorf("%w: endpoint %q: %w", ErrOptions, o.Endpoint, err)
	}
	return &Keeper{client: client, bucket: o.Bucket, prefix: strings.Trim(o.Prefix, "/")}, nil
}

// Keep implements [audit.Keeper]. An object of that name that is there already is
// the same head.
func (k *Keeper) Keep(ctx context.Context, head signing.Envelope) error {
	body, err := head.Encode()
	if err != nil {
		return err
	}
	name, err := k.name(head)
	if err != nil {
		return err
	}
	o := minio.PutObjectOptions{ContentType: "application/json", DisableMultipart: true, SendContentMd5: true} // a lock wants a checksum
	o.SetMatchETagExcept("*")
	_, err = k.client.PutObject(ctx, k.bucket, name, bytes.NewReader(body), int64(len(body)), o)
	if answer := minio.ToErrorResponse(err); err != nil && (answer.StatusCode == http.StatusPreconditionFailed || answer.Code == "PreconditionFailed") {
		return nil // it is kept
	}
	if err != nil {
		return fmt.Errorf("audit: putting a head into bucket %q: %w", k.bucket, err)
	}
	return nil
}

// name is that of the object for a head: no tenant's name stands in it, and it
// differs where the head does.
func (k *Keeper) name(head signing.Envelope) (string, error) {
	h, err := audit.ReadHead(head)
	if err != nil {
		return "", err
	}
	tenant := sha256.Sum256([]byte(h.Tenant))
	whole := sha256.Sum256([]byte(head.Payload))
	return path.Join(k.prefix, h.Ledger, hex.EncodeToString(tenant[:8]), fmt.Sprintf("%012d-%s.json", h.Page, hex.EncodeToString(whole[:8]))), nil
}
