// Package ec2sign signs requests to OpenStack's EC2-style interfaces (heat-api-cfn) with Amazon's signature version 2, which keystone
// checks. It does no network traffic.
//
// The reference is Ec2Signer in keystoneclient/contrib/ec2/utils.py.
package ec2sign

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Credentials are an EC2 key pair of keystone.
type Credentials struct {
	Access, Secret string
}

// URL returns u with the parameters, the time and a signature for the given HTTP method in its query. The query that u has is
// replaced. The host name of the result is in lower case, as it is signed; a client must not send another Host header.
func (c Credentials) URL(method string, u *url.URL, params map[string]string, now time.Time) *url.URL {
	signed := *u
	signed.Host = strings.ToLower(u.Host)
	if signed.Path == "" {
		signed.Path = "/"
	}
	all := map[string]string{
		"AWSAccessKeyId": c.Access, "SignatureMethod": "HmacSHA256", "SignatureVersion": "2",
		"Timestamp": now.UTC().Format("2006-01-02T15:04:05Z"),
	}
	for k, v := range params {
		all[k] = v
	}
	query := canonical(all)
	mac := hmac.New(sha256.New, []byte(c.Secret))
	mac.Write([]byte(method + "\n" + signed.Host + "\n" + signed.EscapedPath() + "\n" + query))
	signed.RawQuery = query + "&Signature=" + escape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return &signed
}

// DescribeStackResource are the parameters of the call that returns a resource with its metadata, as JSON.
func DescribeStackResource(stack, resource string) map[string]string {
	return map[string]string{
		"Action": "DescribeStackResource", "Version": "2010-05-15", "ContentType": "JSON",
		"StackName": stack, "LogicalResourceId": resource,
	}
}

// canonical is the query with sorted names.
func canonical(params map[string]string) string {
	names := make([]string, 0, len(params))
	for name := range params {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = escape(name) + "=" + escape(params[name])
	}
	return strings.Join(names, "&")
}

// escape escapes all but the unreserved characters of RFC 3986; url.QueryEscape writes a space as a plus sign.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', hex[c>>4], hex[c&15]})
	}
	return b.String()
}
