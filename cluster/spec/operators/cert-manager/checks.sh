# shellcheck shell=bash disable=SC2034,SC2154 # run.sh has the other names
# cert-manager: its chart, which its own command installs by Helm, and an authority of its own that signs a certificate.
built=$(programs cert-manager)
module=$(sources cert-manager github.com/cert-manager/cert-manager)
versions="cert-manager $(version cert-manager github.com/cert-manager/cert-manager)"
images=()
for program in controller webhook cainjector acmesolver ctl; do
  images+=(--image "cert-manager-$program=$built/$program")
done

# chart: the chart as cert-manager's own build makes it: with a file of all CRDs beside its templates, and a Chart.yaml.
chart() {
  local chart=$run/chart crd
  cp -rT --no-preserve=mode "$module/deploy/charts/cert-manager" "$chart"
  sed "s/v0.1.0/$(version cert-manager github.com/cert-manager/cert-manager)/" "$chart/Chart.template.yaml" >"$chart/Chart.yaml"
  { echo '{{- if .Values.installCRDs }}'
    for crd in "$module"/deploy/crds/*.yaml; do echo ---; cat "$crd"; done
    echo '{{- end }}'; } >"$chart/templates/crds.yaml"
}

# ctl WORD…: cert-manager's own command, with the folders that Helm wants below $run.
ctl() { KUBECONFIG=$kubeconfig HOME=$run timeout 240 "$built/ctl" "$@"; }

# of KEY: what the certificate's Secret has of it.
of() { get secret web "{.data.${1/./\\.}}" | base64 -d; }

# verifies: the chain of the certificate, and that it is good for its name.
verifies() {
  of ca.crt >"$run/ca.crt" && of tls.crt >"$run/tls.crt" &&
    openssl verify -CAfile "$run/ca.crt" -verify_hostname web.default.svc "$run/tls.crt"
}

# renewed SERIAL: the Secret has a certificate of another number than this one, which verifies.
renewed() { verifies && [ "$(serial)" != "$1" ]; }

serial() { of tls.crt | openssl x509 -noout -serial; }

checks() {
  local before
  chart
  check "its command installs the chart, whose hook has seen the webhook answer" 0 ctl x install --chart-name "$run/chart" --timeout 120s
  check "an authority and a certificate are applied" 0 kubectl apply -f "$here/cert-manager/certificates.yaml"
  check "the certificate is ready" 60 is True get certificate web '{.status.conditions[?(@.type=="Ready")].status}'
  check "openssl verifies it" 0 verifies
  before=$(serial 2>/dev/null) || true # empty where the checks before failed
  check "its Secret is deleted" 0 kubectl delete secret web
  check "there is another certificate, which openssl verifies" 60 renewed "$before"
  check "an Issuer of two kinds is refused by the webhook" 0 refused \
    'admission webhook "webhook.cert-manager.io" denied the request: spec.selfSigned: Forbidden: may not specify more than one issuer type' \
    kubectl apply -f "$here/cert-manager/wrong.yaml"
  check "its command removes what it installed" 0 ctl x uninstall --timeout 100s
  check "no Deployment is left" 0 is '' kubectl get deployments --namespace cert-manager -o name
}
