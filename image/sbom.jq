# The SPDX 2.3 document of the image, from the lists that build.sh makes. A package of Debian is named in full, although the image has only
# some of its files: scanners look up the package. So `filesAnalyzed` is false there, and the files hang on the image itself.
def rows(names): split("\n") | map(split("\t") | [names, .] | transpose | map({key: .[0], value: .[1]}) | from_entries);
# What the page of the console has from npm: the packages of its lock file that are not only for building.
def page_packages: .[0].packages | to_entries | map(select(.key != "" and (.value.dev | not)) | {name: (.key | ltrimstr("node_modules/")), version: .value.version});
def package_id: "SPDXRef-Package-" + gsub("[^A-Za-z0-9.-]"; "-");
def percent: gsub("\\+"; "%2B") | gsub(":"; "%3A") | gsub("~"; "%7E");
def relation(type; target): {spdxElementId: ., relationshipType: type, relatedSpdxElement: target};

($files | rows(["path", "package", "sha1", "sha256"]) | to_entries | map(.value + {id: "SPDXRef-File-\(.key + 1)"})) as $files
| ($packages | rows(["name", "version", "source", "source_version"])) as $packages
| ($page | page_packages) as $page
| {copyrightText: "NOASSERTION", downloadLocation: "NOASSERTION", filesAnalyzed: false, licenseConcluded: "NOASSERTION",
   licenseDeclared: "NOASSERTION"} as $unknown
| {spdxVersion: "SPDX-2.3", dataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT", name: "quartermaster-\($version)-\($arch)",
   documentNamespace: "https://quartermaster.io/spdxdocs/quartermaster-\($version)-\($arch)-\($content)",
   creationInfo: {created: $created, creators: ["Tool: quartermaster-image-build.sh"]},
   packages: ([
     $unknown + {SPDXID: "SPDXRef-Image", name: "quartermaster-image", versionInfo: $version, primaryPackagePurpose: "CONTAINER",
       filesAnalyzed: true, licenseInfoFromFiles: ["NOASSERTION"],
       packageVerificationCode: {packageVerificationCodeValue: $code, packageVerificationCodeExcludedFiles: ["." + $own]}},
     $unknown + {SPDXID: ("quartermaster" | package_id), name: "quartermaster", versionInfo: $version, primaryPackagePurpose: "APPLICATION",
       licenseDeclared: "Apache-2.0"} + (if $revision == "" then {} else {sourceInfo: "commit \($revision)"} end)]
     + ($packages | map($unknown + {SPDXID: (.name | package_id), name, versionInfo: .version, primaryPackagePurpose: "LIBRARY",
       supplier: "Organization: Debian", sourceInfo: "source package \(.source) \(.source_version)",
       licenseComments: "/usr/share/doc/\(.name)/copyright in the image has the licences.",
       externalRefs: [{referenceCategory: "PACKAGE-MANAGER", referenceType: "purl",
         referenceLocator: "pkg:deb/debian/\(.name | percent)@\(.version | percent)?arch=\($arch)&distro=debian-12"}]}))
     + ($page | map($unknown + {SPDXID: ("npm-" + .name | package_id), name, versionInfo: .version, primaryPackagePurpose: "LIBRARY",
       licenseComments: "The program has the licences: assets/third-party.txt of the console.",
       externalRefs: [{referenceCategory: "PACKAGE-MANAGER", referenceType: "purl", referenceLocator: "pkg:npm/\(.name)@\(.version)"}]}))),
   files: ($files | map({SPDXID: .id, fileName: ("." + .path), copyrightText: "NOASSERTION", licenseConcluded: "NOASSERTION",
     licenseInfoInFiles: ["NOASSERTION"],
     checksums: [{algorithm: "SHA1", checksumValue: .sha1}, {algorithm: "SHA256", checksumValue: .sha256}]})),
   relationships: (["SPDXRef-DOCUMENT" | relation("DESCRIBES"; "SPDXRef-Image")]
     + ($packages | map(. as $package | "SPDXRef-Image" | relation("CONTAINS"; $package.name | package_id)))
     + ["SPDXRef-Image" | relation("CONTAINS"; "quartermaster" | package_id)]
     + ($page | map(. as $package | "quartermaster" | package_id | relation("CONTAINS"; "npm-" + $package.name | package_id)))
     + ($files | map(.id as $file | "SPDXRef-Image" | relation("CONTAINS"; $file)))
     + ($files | map(.package as $package | .id | relation("GENERATED_FROM"; $package | package_id))))}
