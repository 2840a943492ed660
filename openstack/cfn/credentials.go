package cfn

import (
	"fmt"
	"strings"

	"github.com/brine-salt/brine/openstack/internal/ec2sign"
)

// credentials returns the keys for the CFN API, or nil if there are none. As in heat-cfntools, a file takes
// precedence over keys, and keys are only used in pairs.
func (h *host) credentials(q query) (*ec2sign.Credentials, error) {
	if q.credentials != "" {
		b, err := readBounded(h.path(q.credentials))
		if err != nil {
			return nil, fmt.Errorf("cannot read the credentials: %w", err)
		}
		c, err := parseCredentials(string(b), q.credentials)
		return &c, err
	}
	if q.access == "" || q.secret == "" {
		return nil, nil
	}
	return &ec2sign.Credentials{Access: q.access, Secret: q.secret}, nil
}

// parseCredentials parses keys in the format of cfn-credentials (AWSAccessKeyId=…, AWSSecretKey=…) or of boto
// ([Credentials], aws_access_key_id = …, aws_secret_access_key = …). Other lines are ignored. Errors contain the
// file's name but never a value.
func parseCredentials(text, file string) (ec2sign.Credentials, error) {
	var c ec2sign.Credentials
	for _, line := range strings.Split(text, "\n") {
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "AWSAccessKeyId", "aws_access_key_id":
			c.Access = value
		case "AWSSecretKey", "aws_secret_access_key":
			c.Secret = value
		}
	}
	switch {
	case c.Access == "":
		return c, fmt.Errorf("credentials file %s has no AWSAccessKeyId (or aws_access_key_id)", file)
	case c.Secret == "":
		return c, fmt.Errorf("credentials file %s has no AWSSecretKey (or aws_secret_access_key)", file)
	}
	return c, nil
}
