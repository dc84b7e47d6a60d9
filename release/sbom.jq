# The SPDX 2.3 document of the executable: one package per source package of Debian that was compiled or linked into it, and per npm package
# in the page of the console.
def rows(names): split("\n") | map(select(. != "") | split("\t") | [names, .] | transpose | map({key: .[0], value: .[1]}) | from_entries);
# What the page of the console has from npm: the packages of its lock file that are not only for building.
def page_packages: .[0].packages | to_entries | map(select(.key != "" and (.value.dev | not)) | {name: (.key | ltrimstr("node_modules/")), version: .value.version});
def package_id: "SPDXRef-Package-" + gsub("[^A-Za-z0-9.-]"; "-");
def percent: gsub("\\+"; "%2B") | gsub(":"; "%3A") | gsub("~"; "%7E");

($sources | rows(["name", "version"])) as $sources
| ($page | page_packages) as $page
| {copyrightText: "NOASSERTION", downloadLocation: "NOASSERTION", filesAnalyzed: false, licenseConcluded: "NOASSERTION",
   licenseDeclared: "NOASSERTION"} as $unknown
| {spdxVersion: "SPDX-2.3", dataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT", name: $name,
   documentNamespace: "https://quartermaster.io/spdxdocs/\($name)-\($sha256)",
   creationInfo: {created: $created, creators: ["Tool: quartermaster-release.sh"]},
   packages: ([$unknown + {SPDXID: ("quartermaster" | package_id), name: "quartermaster", versionInfo: $version,
       primaryPackagePurpose: "APPLICATION", licenseDeclared: "Apache-2.0", packageFileName: "quartermaster",
       checksums: [{algorithm: "SHA1", checksumValue: $sha1}, {algorithm: "SHA256", checksumValue: $sha256}]}
       + (if $revision == "" then {} else {sourceInfo: "commit \($revision)"} end)]
     + ($sources | map($unknown + {SPDXID: (.name | package_id), name, versionInfo: .version, primaryPackagePurpose: "LIBRARY",
       supplier: "Organization: Debian", licenseComments: "THIRD-PARTY in the archive has the licences.",
       externalRefs: [{referenceCategory: "PACKAGE-MANAGER", referenceType: "purl",
         referenceLocator: "pkg:deb/debian/\(.name | percent)@\(.version | percent)?arch=source&distro=debian-12"}]}))
     + ($page | map($unknown + {SPDXID: ("npm-" + .name | package_id), name, versionInfo: .version, primaryPackagePurpose: "LIBRARY",
       licenseComments: "THIRD-PARTY in the archive has the licences.",
       externalRefs: [{referenceCategory: "PACKAGE-MANAGER", referenceType: "purl", referenceLocator: "pkg:npm/\(.name)@\(.version)"}]}))),
   relationships: ([{spdxElementId: "SPDXRef-DOCUMENT", relationshipType: "DESCRIBES", relatedSpdxElement: ("quartermaster" | package_id)}]
     + ($sources | map({spdxElementId: ("quartermaster" | package_id), relationshipType: "STATIC_LINK", relatedSpdxElement: (.name | package_id)}))
     + ($page | map({spdxElementId: ("quartermaster" | package_id), relationshipType: "CONTAINS", relatedSpdxElement: ("npm-" + .name | package_id)})))}
