package ec2sign

import (
	"net/url"
	"testing"
	"time"
)

// TestURLEqualsKeystonesSigner expects the signature of keystoneclient's Ec2Signer.
func TestURLEqualsKeystonesSigner(t *testing.T) {
	u, err := url.Parse("http://127.0.0.1:8000/v1/")
	if err != nil {
		t.Fatal(err)
	}
	params := DescribeStackResource("a b~/ü", "x-y_z.1*")
	got := Credentials{"key1", "secret"}.URL("GET", u, params, time.Date(2026, 1, 2, 4, 4, 5, 0, time.FixedZone("", 3600)))
	const want = "http://127.0.0.1:8000/v1/?AWSAccessKeyId=key1&Action=DescribeStackResource&ContentType=JSON" +
		"&LogicalResourceId=x-y_z.1%2A&SignatureMethod=HmacSHA256&SignatureVersion=2&StackName=a%20b~%2F%C3%BC" +
		"&Timestamp=2026-01-02T03%3A04%3A05Z&Version=2010-05-15&Signature=p1Odjuelv56hKesce3dNzQjbiaBZV4hr1pXU1u7KMtE%3D"
	if got.String() != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if u.RawQuery != "" {
		t.Error("the URL of the caller was changed")
	}
}

func TestURLSignsTheHostThatItSends(t *testing.T) {
	u := &url.URL{Scheme: "http", Host: "Heat.Example.ORG:8000"}
	got := Credentials{"a", "b"}.URL("GET", u, nil, time.Unix(0, 0))
	if got.Host != "heat.example.org:8000" || got.Path != "/" {
		t.Errorf("host %q, path %q", got.Host, got.Path)
	}
}
