package s3_test

import (
	"context"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/s3"
)

// The objects of a bucket.
func Example() {
	reports, err := s3.New(s3.Options{
		Region: "eu-central-1", Bucket: "acme-reports", AccessKey: "AKIAEXAMPLE",
		Secret: func(context.Context) (string, error) { return "from a vault", nil },
	})
	if err != nil {
		panic(err)
	}
	var reg connectors.Registry
	if err := reg.Register("reports", connectors.Destination{Connector: reports, Profiles: reports.Profiles()}); err != nil {
		panic(err)
	}
	// Output:
}
