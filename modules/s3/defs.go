package s3

import "github.com/brine-salt/brine/modules"

// Compatibility.
//
// s3.get differs: the server is asked over HTTPS unless https_enable is False, and its certificate is checked unless verify_ssl is False;
// stock does neither by default. Key and keyid must be given: they are not asked of the machine's cloud, and role_arn is refused. The
// location is us-east-1 if none is given. With path_style an empty path is the bucket itself. A local file is replaced as a whole.
// s3.head differs: names of headers begin with capitals.

func init() { modules.Register(Module) }

// Module is Salt's "s3".
var Module = &modules.Module{Name: "s3", Doc: "Objects in Amazon S3 and storage that speaks its interface.", Funcs: []modules.Def{
	{Name: "delete", Doc: `Delete a bucket, or an object in it.

bucket, path
    The bucket and the object.
key, keyid, service_url, verify_ssl, kms_keyid, location, path_style, https_enable
    As for s3.get.`,
		Example: "salt '*' s3.delete mybucket remoteobject", Params: []modules.Param{
			{Name: "bucket"}, {Name: "path", Optional: true}, {Name: "action", Optional: true}, {Name: "key", Optional: true, Secret: true},
			{Name: "keyid", Optional: true}, {Name: "service_url", Optional: true}, {Name: "verify_ssl", Optional: true},
			{Name: "kms_keyid", Optional: true}, {Name: "location", Optional: true}, {Name: "role_arn", Optional: true},
			{Name: "path_style", Optional: true}, {Name: "https_enable", Optional: true},
		}, Run: remove},
	{Name: "get", Doc: `List the buckets, list a bucket, or return an object.

bucket, path
    The bucket and the object.
return_bin
    Return the bytes; without it the object is read as XML.
local_file
    Save the object as this file.
key, keyid
    The secret key and its id. Without them the options s3.key and s3.keyid; likewise s3.service_url and so on for the others.
service_url
    The server, s3.amazonaws.com by default.
location
    The region.
path_style
    Name the bucket in the path instead of the host.
https_enable, verify_ssl
    False to speak HTTP, and not to check the certificate.
kms_keyid
    The key with which the server encrypts what is put.`,
		Example: "salt '*' s3.get mybucket myfile.png local_file=/tmp/myfile.png", Params: []modules.Param{
			{Name: "bucket", Default: ""}, {Name: "path", Default: ""}, {Name: "return_bin", Default: false}, {Name: "action", Optional: true},
			{Name: "local_file", Optional: true}, {Name: "key", Optional: true, Secret: true}, {Name: "keyid", Optional: true},
			{Name: "service_url", Optional: true}, {Name: "verify_ssl", Optional: true}, {Name: "kms_keyid", Optional: true},
			{Name: "location", Optional: true}, {Name: "role_arn", Optional: true}, {Name: "path_style", Optional: true},
			{Name: "https_enable", Optional: true},
		}, Run: get},
	{Name: "head", Doc: "Return the headers of a bucket or an object. The arguments are those of s3.get.", Example: "salt '*' s3.head mybucket myfile.png", Params: []modules.Param{
		{Name: "bucket"}, {Name: "path", Default: ""}, {Name: "key", Optional: true, Secret: true}, {Name: "keyid", Optional: true},
		{Name: "service_url", Optional: true}, {Name: "verify_ssl", Optional: true}, {Name: "kms_keyid", Optional: true},
		{Name: "location", Optional: true}, {Name: "role_arn", Optional: true}, {Name: "path_style", Optional: true},
		{Name: "https_enable", Optional: true},
	}, Run: head},
	{Name: "put", Doc: `Create a bucket, or upload a file. The arguments are those of s3.get.

local_file
    The file.`,
		Example: "salt '*' s3.put mybucket remotepath local_file=/path/to/file", Params: []modules.Param{
			{Name: "bucket"}, {Name: "path", Optional: true}, {Name: "return_bin", Default: false}, {Name: "action", Optional: true},
			{Name: "local_file", Optional: true}, {Name: "key", Optional: true, Secret: true}, {Name: "keyid", Optional: true},
			{Name: "service_url", Optional: true}, {Name: "verify_ssl", Optional: true}, {Name: "kms_keyid", Optional: true},
			{Name: "location", Optional: true}, {Name: "role_arn", Optional: true}, {Name: "path_style", Optional: true},
			{Name: "https_enable", Optional: true},
		}, Run: put},
}}
