// Package crypt holds Salt's cryptography: RSA keys and signatures, the X9.31 transform, the AES and HMAC container
// (Crypticle), key text and fingerprints.
//
// Salt's sources: salt/crypt.py, salt/utils/rsax931.py, salt/utils/crypt.py.
package crypt
