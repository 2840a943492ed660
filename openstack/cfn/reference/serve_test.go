//go:build openstack

package reference

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
)

// apiMetadata is the metadata that the tests' CFN API returns.
var apiMetadata atomic.Value

// serveAPI implements DescribeStackResource as heat-api-cfn does.
func serveAPI(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || r.Form.Get("Action") != "DescribeStackResource" || r.Form.Get("LogicalResourceId") != "server" {
		http.Error(w, "odd request", http.StatusBadRequest)
		return
	}
	// heat-cfntools signs with version 4 in a header, brine with version 2 in the query.
	if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=ak/") && r.Form.Get("AWSAccessKeyId") != "ak" {
		http.Error(w, "no signature", http.StatusForbidden)
		return
	}
	text, err := json.Marshal(apiMetadata.Load())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"DescribeStackResourceResponse": {"DescribeStackResourceResult": {"StackResourceDetail": {"Metadata": %s}}}}`, text)
}
