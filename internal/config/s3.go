package config

import (
	"cmp"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/s3"
)

type s3Settings struct {
	Type       string     `yaml:"type"`
	URL        string     `yaml:"url"`
	Region     string     `yaml:"region"`
	Bucket     string     `yaml:"bucket"`
	AccessKey  string     `yaml:"access_key"`
	SecretEnv  string     `yaml:"secret_env"`
	SecretFile string     `yaml:"secret_file"`
	SecretArgv argv       `yaml:"secret_command"`
	Connection connection `yaml:",inline"`
	Promises   promises   `yaml:",inline"`
}

func (s *s3Settings) promises() promises { return s.Promises }

func (s *s3Settings) destination(from origin) (connectors.Destination, error) {
	secret, err := Secret{s.SecretEnv, s.SecretFile, s.SecretArgv}.as("secret").open(from)
	if err != nil {
		return connectors.Destination{}, err
	}
	o := s3.Options{
		URL: s.URL, Region: s.Region, Bucket: s.Bucket, AccessKey: s.AccessKey, Secret: secret,
		SendTimeout: time.Duration(s.Promises.SendTimeout), ReadTimeout: time.Duration(s.Promises.ReadTimeout),
	}
	if o.Transport, err = s.Connection.transport(s.Promises.Egress, cmp.Or(s.URL, "https://s3.amazonaws.com"), from); err != nil {
		return connectors.Destination{}, err
	}
	c, err := s3.New(o)
	if err != nil {
		return connectors.Destination{}, err
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}
