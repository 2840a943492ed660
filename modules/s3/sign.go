package s3

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"
)

// sign signs a request without a query by AWS's version 4: its headers and the digest of its body. docs.aws.amazon.com/AmazonS3/latest/API,
// "Signature Calculations for the Authorization Header".
func sign(req *http.Request, at time.Time, keyid, key, location, digest string) {
	moment := at.UTC().Format("20060102T150405Z")
	req.Header.Set("X-Amz-Date", moment)
	req.Header.Set("X-Amz-Content-Sha256", digest)
	names, headers := []string{"host"}, ""
	for name := range req.Header {
		names = append(names, strings.ToLower(name))
	}
	slices.Sort(names)
	for _, name := range names {
		value := req.URL.Host
		if name != "host" {
			value = strings.TrimSpace(req.Header.Get(name))
		}
		headers += name + ":" + value + "\n"
	}
	signed := strings.Join(names, ";")
	sum := sha256.Sum256([]byte(strings.Join([]string{req.Method, req.URL.EscapedPath(), "", headers, signed, digest}, "\n")))
	scope := []string{moment[:8], location, "s3", "aws4_request"}
	with := []byte("AWS4" + key)
	for _, part := range append(scope, "AWS4-HMAC-SHA256\n"+moment+"\n"+strings.Join(scope, "/")+"\n"+hex.EncodeToString(sum[:])) {
		mac := hmac.New(sha256.New, with)
		mac.Write([]byte(part))
		with = mac.Sum(nil)
	}
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+keyid+"/"+strings.Join(scope, "/")+
		", SignedHeaders="+signed+", Signature="+hex.EncodeToString(with))
}
