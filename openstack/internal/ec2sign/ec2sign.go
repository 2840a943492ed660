// Package ec2sign signs requests to OpenStack's EC2-style interfaces (heat-api-cfn) with Amazon's signature version
// 2, which Keystone verifies. It makes no requests itself.
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

// URL returns u with a query that contains the parameters, the time and a signature for the HTTP method. It replaces
// u's query. The host name in the result is in lower case, in the form that is signed; a client must not send another
// Host header.
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

// DescribeStackResource returns the parameters of the call that returns a resource with its metadata as JSON.
func DescribeStackResource(stack, resource string) map[string]string {
	return map[string]string{
		"Action": "DescribeStackResource", "Version": "2010-05-15", "ContentType": "JSON",
		"StackName": stack, "LogicalResourceId": resource,
	}
}

// canonical returns the query with sorted names.
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

// escape escapes all characters except the unreserved ones of RFC 3986. Unlike url.QueryEscape it does not write a
// space as a plus sign.
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
