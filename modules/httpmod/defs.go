// Package httpmod is Salt's execution module http: requests to web servers. Salt's sources: salt/modules/http.py and
// salt/utils/http.py with the back end tornado, which is stock's default.
package httpmod

import "github.com/brine-salt/brine/modules"

// http.query differs: every back end is the same one. Cookies are not kept in files: cookies and persist_session are errors.
// http.update_ca_bundle differs: what was fetched replaces the bundle only if it holds certificates.

func init() { modules.Register(Module) }

// Module is "http".
var Module = &modules.Module{Name: "http", Doc: "Requests to web servers.", Funcs: []modules.Def{
	{Name: "query", Doc: `Send a request to a web server and return what it answers: its body, and what else is asked for. A server that cannot be
reached, or answers with an error, is an "error" in the result.

url
    The address.
method
    GET by default.
params
    A map that is added to the address as its query.
data, data_file, data_render, data_renderer, template_dict
    The body: text, or a map that is sent as a form; or a file with it, which is rendered first if wanted.
header_dict, header_list, header_file, header_render, header_renderer
    Headers: a map, a list of "Name: value", or a file with such lines.
username, password
    Basic authentication.
decode, decode_type
    Decode the body into "dict": auto, json, yaml, xml or plain.
status, headers, text
    Put the status, the headers and the text into the result.
text_out, headers_out, decode_out
    Files to write these to.
decode_body
    False keeps the body as bytes.
raise_error
    False takes an answer with an error status for an answer.
cert, ca_bundle, verify_ssl
    A client certificate (a file, or a list of certificate and key), the authorities, and whether the server's certificate is checked.
formdata, formdata_fieldname, formdata_filename
    Send the data as a file of a form.
agent
    The name to go by.
test, test_url
    Send nothing, or a request to test_url.`,
		Example: `salt '*' http.query http://example.com/
salt '*' http.query http://example.com/ method=POST params='{"key1": "val1"}'
salt '*' http.query http://example.com/ method=POST data='<xml>somecontent</xml>'`, Params: []modules.Param{{Name: "url"}}, Kwargs: "kwargs", Run: runQuery},
	{Name: "update_ca_bundle", Doc: `Fetch the bundle of certificate authorities anew.

target
    The bundle; by default the one that the host uses.
source
    Where to fetch it from (option ca_bundle_url).
merge_files
    Files with certificates to add.`,
		Example: "salt '*' http.update_ca_bundle target=/path/to/cacerts.pem source=https://example.com/cacerts.pem", Params: []modules.Param{{Name: "target", Optional: true}, {Name: "source", Optional: true},
			{Name: "merge_files", Optional: true}}, Run: updateBundle},
	{Name: "wait_for_successful_query", Doc: `Send a request until it succeeds.

url
    The address. The other arguments are those of http.query.
wait_for
    Give up after so many seconds; then the last answer is returned.
request_interval
    Pause between requests, in seconds.`,
		Example: "salt '*' http.wait_for_successful_query http://example.com/ wait_for=160 request_interval=1", Params: []modules.Param{{Name: "url"}, {Name: "wait_for", Default: int64(300)}},
		Kwargs: "kwargs", Run: waitFor},
}}
