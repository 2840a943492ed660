package modules

import (
	"regexp"
	"sync"
)

var credentials = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)(https?)://.*@`) })

// RedactAuth removes user and password from web addresses in a text (salt.utils.url.redact_http_basic_auth).
func RedactAuth(s string) string { return credentials().ReplaceAllString(s, "$1://<redacted>@") }
