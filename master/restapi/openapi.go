package restapi

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.json
var description []byte

// openAPI serves the description of this interface.
func openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(description)
}
