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

// Options configures a [HeadStore]. Endpoint and Bucket are required.
type Options struct {
	// Endpoint is the host of the store, and its port if that is not the default:
	// s3.eu-central-1.amazonaws.com.
	Endpoint string
	// Bucket must exist. Prefix begins the names of objects. Default none.
	Bucket, Prefix string
	// Region of the bucket. Default: the store is queried.
	Region string
	// AccessKey and SecretKey are the credentials. They need the right to put objects, and no
	// other. Default: anonymous.
	AccessKey, SecretKey string
	// Keys fetches both anew for each head. Default: they do not change.
	Keys func(ctx context.Context) (access, secret string, err error)
	// Insecure speaks HTTP without TLS. Default false.
	Insecure bool
	// Transport carries requests. Default [http.DefaultTransport].
	Transport http.RoundTripper
}

// ErrOptions reports missing settings.
var ErrOptions = errors.New("object store")

// HeadStore stores each head as an object of its own, which it never overwrites. The name consists
// of the tenant's digest, the page and the beginning of the page's hash.
type HeadStore struct {
	client         *minio.Client
	bucket, prefix string
}

var _ audit.HeadStore = (*HeadStore)(nil)

// New returns a store for heads. It sends no request. It fails with [ErrOptions].
func New(o Options) (*HeadStore, error) {
	if o.Endpoint == "" || o.Bucket == "" {
		return nil, fmt.Errorf("%w: endpoint is %q and bucket is %q; want both", ErrOptions, o.Endpoint, o.Bucket)
	}
	if (o.AccessKey == "") != (o.SecretKey == "") {
		return nil, fmt.Errorf("%w: want an access key and a secret key, or neither", ErrOptions)
	}
	creds := credentials.NewStaticV4(o.AccessKey, o.SecretKey, "")
	if o.Keys != nil {
		creds = credentials.New(fetched{o.Keys})
	}
	client, err := minio.New(o.Endpoint, &minio.Options{
		Creds: creds, Secure: !o.Insecure, Region: o.Region,
		Transport: o.Transport, MaxRetries: 1, // the caller tries again
	})
	if err != nil {
		return nil, fmt.Errorf("%w: endpoint %q: %w", ErrOptions, o.Endpoint, err)
	}
	return &HeadStore{client: client, bucket: o.Bucket, prefix: strings.Trim(o.Prefix, "/")}, nil
}

// fetched are keys that are fetched for each request.
type fetched struct {
	keys func(context.Context) (access, secret string, err error)
}

// Retrieve implements [credentials.Provider].
func (f fetched) Retrieve() (credentials.Value, error) { return f.RetrieveWithCredContext(nil) }

// RetrieveWithCredContext implements [credentials.Provider].
func (f fetched) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	access, secret, err := f.keys(context.Background()) // the library has none to give
	return credentials.Value{AccessKeyID: access, SecretAccessKey: secret, SignerType: credentials.SignatureV4}, err
}

// IsExpired implements [credentials.Provider].
func (f fetched) IsExpired() bool { return true }

// Keep implements [audit.HeadStore]. An existing object of that name is the same head.
func (k *HeadStore) Keep(ctx context.Context, head signing.Envelope) error {
	body, err := head.Encode()
	if err != nil {
		return err
	}
	name, err := k.name(head)
	if err != nil {
		return err
	}
	o := minio.PutObjectOptions{ContentType: "application/json", DisableMultipart: true, SendContentMd5: true} // an object lock requires a checksum
	o.SetMatchETagExcept("*")
	_, err = k.client.PutObject(ctx, k.bucket, name, bytes.NewReader(body), int64(len(body)), o)
	if answer := minio.ToErrorResponse(err); err != nil && (answer.StatusCode == http.StatusPreconditionFailed || answer.Code == "PreconditionFailed") {
		return nil // it is already stored
	}
	if err != nil {
		return fmt.Errorf("audit: putting a head into bucket %q: %w", k.bucket, err)
	}
	return nil
}

// name is the object's name for a head: it does not reveal the tenant's name, and differs if the
// head does.
func (k *HeadStore) name(head signing.Envelope) (string, error) {
	h, err := audit.ReadHead(head)
	if err != nil {
		return "", err
	}
	tenant := sha256.Sum256([]byte(h.Tenant))
	whole := sha256.Sum256([]byte(head.Payload))
	return path.Join(k.prefix, h.Ledger, hex.EncodeToString(tenant[:8]), fmt.Sprintf("%012d-%s.json", h.Page, hex.EncodeToString(whole[:8]))), nil
}
