# certs.sh: the cluster's own certificate authority and the kubeconfigs made with it. Sourced by cluster.sh.
# Each cluster gets new certificates, which are deleted with it. Keys are P-256, because RSA keys would take a second.

# quietly COMMAND...: openssl writes much to stderr. It is shown only if the command fails.
quietly() { "$@" 2>logs/openssl.log || { cat logs/openssl.log >&2; die "the certificates could not be made"; }; }

ec=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650)

# issue NAME SUBJECT EXTENSION...: certs/NAME.crt and .key, signed by the cluster's CA, or by $authority.
issue() {
  local name=$1 subject=$2 extensions=(); shift 2
  while (($#)); do extensions+=(-addext "$1"); shift; done
  quietly openssl req -x509 "${ec[@]}" -CA "certs/${authority:-ca}.crt" -CAkey "certs/${authority:-ca}.key" -subj "$subject" -keyout "certs/$name.key" -out "certs/$name.crt" \
    -addext basicConstraints=critical,CA:FALSE "${extensions[@]}"
}

client() { issue "$1" "$2" extendedKeyUsage=clientAuth; }

# make_certs: in the cluster's folder. People, tests and KWOK are in `system:masters`; the components have their RBAC names.
make_certs() {
  mkdir -p certs; chmod 700 certs
  quietly openssl req -x509 "${ec[@]}" -subj /CN=quartermaster-test-cluster -keyout certs/ca.key -out certs/ca.crt \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign
  quietly openssl ecparam -name prime256v1 -genkey -noout -out certs/service-account.key
  quietly openssl ec -in certs/service-account.key -pubout -out certs/service-account.pub
  issue server /CN=kube-apiserver extendedKeyUsage=serverAuth \
    "subjectAltName=DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,IP:127.0.0.1,IP:10.96.0.1,IP:$server_address"
  client admin /O=system:masters/CN=kubernetes-admin
  client kube-controller-manager /CN=system:kube-controller-manager
  client kube-scheduler /CN=system:kube-scheduler
  client kwok /O=system:masters/CN=kwok
  # kube-apiserver shows it to the servers of an APIService. No authority of people signs it: who has its key may say who asks.
  quietly openssl req -x509 "${ec[@]}" -subj /CN=quartermaster-test-front-proxy -keyout certs/front-proxy-ca.key -out certs/front-proxy-ca.crt \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign
  authority=front-proxy-ca client front-proxy /CN=front-proxy
}

# write_kubeconfig FILE SERVER USER CREDENTIAL-LINE...: the credential lines are YAML of the user entry.
write_kubeconfig() {
  local file=$1 server=$2 user=$3; shift 3
  { cat <<EOF
apiVersion: v1
kind: Config
clusters:
- name: $name
  cluster:
    server: $server
    certificate-authority-data: $(base64 -w0 <certs/ca.crt)
users:
- name: $user
  user:
$(printf '    %s\n' "$@")
contexts:
- name: $name
  context: {cluster: $name, user: $user}
current-context: $name
EOF
  } >"$file.new"
  chmod 600 "$file.new"; mv "$file.new" "$file"
}

# certificate_kubeconfig FILE SERVER NAME: the file contains the certificate, so it can be copied anywhere.
certificate_kubeconfig() {
  write_kubeconfig "$1" "$2" "$3" "client-certificate-data: $(base64 -w0 <"certs/$3.crt")" "client-key-data: $(base64 -w0 <"certs/$3.key")"
}
