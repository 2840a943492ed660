package s3

import (
	"net/http"
	"testing"
	"time"

	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) {
	modulestest.Run(t, Module)
	modulestest.House(t, Module)
}

// TestSign is the first example of AWS's documentation, "Signature Calculations for the Authorization Header", GET Object.
func TestSign(t *testing.T) {
	req, err := http.NewRequest(http.MethodGet, "https://examplebucket.s3.amazonaws.com/test.txt", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Range", "bytes=0-9")
	sign(req, time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC), "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1",
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
	want := "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, " +
		"SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
	if got := req.Header.Get("Authorization"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
