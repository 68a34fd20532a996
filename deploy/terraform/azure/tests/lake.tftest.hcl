# Everything is planned and nothing applied: what may not be destroyed could not be cleaned up.

mock_provider "azurerm" {
  override_during = plan

  mock_data "azurerm_client_config" {
    defaults = {
      tenant_id = "11111111-1111-1111-1111-111111111111"
      object_id = "22222222-2222-2222-2222-222222222222"
    }
  }
  mock_resource "azurerm_storage_account" {
    defaults = { id = "/account" }
  }
  mock_resource "azurerm_storage_container" {
    defaults = { id = "/account/container" }
  }
  mock_resource "azurerm_key_vault" {
    defaults = { id = "/vault" }
  }
  mock_resource "azurerm_databricks_workspace" {
    defaults = { workspace_url = "adb-1234567890123456.7.azuredatabricks.net" }
  }
  mock_resource "azurerm_container_group" {
    defaults = { ip_address = "10.0.0.4" }
  }
  mock_resource "azurerm_mysql_flexible_server" {
    defaults = { fqdn = "lake.mysql.database.azure.com" }
  }
}

mock_provider "azuread" {
  override_during = plan

  mock_resource "azuread_application" {
    defaults = { client_id = "33333333-3333-3333-3333-333333333333" }
  }
  mock_resource "azuread_service_principal" {
    defaults = { object_id = "44444444-4444-4444-4444-444444444444" }
  }
  mock_resource "azuread_application_password" {
    defaults = { value = "the-secret-of-the-principal" }
  }
  mock_data "azuread_service_principal" {
    defaults = { object_id = "55555555-5555-5555-5555-555555555555" }
  }
}

mock_provider "databricks" {
  override_during = plan

  mock_resource "databricks_cluster" {
    defaults = { id = "0123-456789-abcdefgh" }
  }
}

mock_provider "random" {
  override_during = plan

  mock_resource "random_password" {
    defaults = { result = "the-password-of-the-server" }
  }
}

variables {
  storage_account = "mycompanyevents"
  location        = "westeurope"
}

run "whole" {
  command = plan

  assert {
    condition = alltrue([
      azurerm_storage_account.lake.account_kind == "StorageV2",
      azurerm_storage_account.lake.is_hns_enabled,
      azurerm_storage_account.lake.min_tls_version == "TLS1_2",
      azurerm_storage_account.lake.https_traffic_only_enabled,
      !azurerm_storage_account.lake.allow_nested_items_to_be_public,
      !azurerm_storage_account.lake.shared_access_key_enabled,
      azurerm_storage_account.lake.network_rules[0].default_action == "Allow",
    ])
    error_message = "The storage account is not as it should be."
  }

  assert {
    condition     = azurerm_storage_container.lake.container_access_type == "private" && azurerm_storage_container.lake.storage_account_id == "/account"
    error_message = "The container is not private, or elsewhere."
  }

  assert {
    condition     = azurerm_storage_management_policy.lake.rule[0].filters[0].prefix_match == tolist(["events/segment-stage/"])
    error_message = "The rule is for another folder."
  }

  assert {
    condition     = azurerm_storage_management_policy.lake.rule[0].actions[0].base_blob[0].delete_after_days_since_modification_greater_than == 14
    error_message = "Staging does not expire."
  }

  assert {
    condition     = azurerm_key_vault.lake.rbac_authorization_enabled && azurerm_key_vault.lake.purge_protection_enabled
    error_message = "The vault is not protected."
  }

  assert {
    condition     = azurerm_key_vault_secret.principal.name == "spsecret" && azurerm_key_vault_secret.principal.value == "the-secret-of-the-principal"
    error_message = "The vault does not have the principal's secret."
  }

  assert {
    condition     = length(azurerm_key_vault.lake.name) <= 24
    error_message = "Vaults have shorter names."
  }

  assert {
    condition     = databricks_secret_scope.lake[0].keyvault_metadata[0].resource_id == "/vault"
    error_message = "The secret scope is another vault's."
  }

  assert {
    condition = { for name, one in azurerm_mysql_flexible_server_configuration.metastore : name => one.value } == {
      require_secure_transport           = "ON"
      tls_version                        = "TLSv1.2"
      sql_generate_invisible_primary_key = "OFF"
    }
    error_message = "The server is set up otherwise."
  }

  assert {
    condition     = azurerm_mysql_flexible_database.metastore[0].name == "metastore" && azurerm_mysql_flexible_database.metastore[0].charset == "utf8mb3"
    error_message = "The database is another."
  }

  assert {
    condition     = keys(azurerm_mysql_flexible_server_firewall_rule.metastore) == ["azure"]
    error_message = "Others may reach the server."
  }

  assert {
    condition     = azurerm_mysql_flexible_server.metastore[0].administrator_password == azurerm_key_vault_secret.metastore["password"].value
    error_message = "The vault has another password."
  }

  assert {
    condition = alltrue([
      databricks_cluster.lake[0].node_type_id == "Standard_DS4_v2",
      databricks_cluster.lake[0].autoscale[0].min_workers == 2,
      databricks_cluster.lake[0].autoscale[0].max_workers == 8,
      databricks_cluster.lake[0].autotermination_minutes == 0,
    ])
    error_message = "The cluster has another size."
  }

  assert {
    condition = databricks_cluster.lake[0].spark_conf == tomap({
      "spark.hadoop.fs.azure.account.auth.type.mycompanyevents.dfs.core.windows.net"              = "OAuth"
      "spark.hadoop.fs.azure.account.oauth.provider.type.mycompanyevents.dfs.core.windows.net"    = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
      "spark.hadoop.fs.azure.account.oauth2.client.endpoint.mycompanyevents.dfs.core.windows.net" = "https://login.microsoftonline.com/11111111-1111-1111-1111-111111111111/oauth2/token"
      "spark.hadoop.fs.azure.account.oauth2.client.id.mycompanyevents.dfs.core.windows.net"       = "33333333-3333-3333-3333-333333333333"
      "spark.hadoop.fs.azure.account.oauth2.client.secret.mycompanyevents.dfs.core.windows.net"   = "{{secrets/eventlake/spsecret}}"
      "spark.hadoop.javax.jdo.option.ConnectionDriverName"                                        = "org.mariadb.jdbc.Driver"
      "spark.hadoop.javax.jdo.option.ConnectionURL"                                               = "jdbc:mysql://lake.mysql.database.azure.com:3306/metastore?useSSL=true&requireSSL=true&enabledSslProtocolSuites=TLSv1.2"
      "spark.hadoop.javax.jdo.option.ConnectionUserName"                                          = "{{secrets/eventlake/metastore-user}}"
      "spark.hadoop.javax.jdo.option.ConnectionPassword"                                          = "{{secrets/eventlake/metastore-password}}"
      "spark.sql.hive.metastore.version"                                                          = "2.3.9"
      "spark.sql.hive.metastore.jars"                                                             = "builtin"
      "spark.hadoop.datanucleus.autoCreateSchema"                                                 = "true"
      "spark.hadoop.datanucleus.schema.autoCreateTables"                                          = "true"
      "spark.hadoop.datanucleus.fixedDatastore"                                                   = "false"
      "spark.hadoop.hive.metastore.schema.verification"                                           = "false"
      "spark.hive.mapred.supports.subdirectories"                                                 = "true"
      "spark.hadoop.mapreduce.input.fileinputformat.input.dir.recursive"                          = "true"
      "spark.sql.storeAssignmentPolicy"                                                           = "Legacy"
      "spark.sql.hive.convertMetastoreParquet"                                                    = "true"
    })
    error_message = "Spark is set up otherwise than documented."
  }

  assert {
    condition = databricks_cluster.lake[0].spark_env_vars == tomap({
      AZURE_TENANT_ID     = "11111111-1111-1111-1111-111111111111"
      AZURE_CLIENT_ID     = "33333333-3333-3333-3333-333333333333"
      AZURE_CLIENT_SECRET = "{{secrets/eventlake/spsecret}}"
    })
    error_message = "The nodes do not know who they are."
  }

  assert {
    condition     = length(azurerm_container_group.metastore) == 0 && output.metastore_uri == null && !strcontains(output.settings, "[catalog]")
    error_message = "There is a service that nobody asked for."
  }

  assert {
    condition     = !strcontains("${jsonencode(databricks_cluster.lake[0].spark_conf)}${output.settings}", "the-secret") && !strcontains("${jsonencode(databricks_cluster.lake[0].spark_conf)}${output.settings}", "the-password")
    error_message = "A secret is shown."
  }


}

run "least_privilege" {
  command = plan

  variables {
    secret_readers = ["66666666-6666-6666-6666-666666666666"]
  }

  assert {
    condition = alltrue([
      azurerm_role_assignment.lake.role_definition_name == "Storage Blob Data Contributor",
      azurerm_role_assignment.lake.scope == "/account/container",
      azurerm_role_assignment.lake.principal_id == "44444444-4444-4444-4444-444444444444",
    ])
    error_message = "The principal may write elsewhere than in the container, or not there."
  }

  assert {
    condition = { for name, one in azurerm_role_assignment.reader : name => one.principal_id } == {
      principal                              = "44444444-4444-4444-4444-444444444444"
      databricks                             = "55555555-5555-5555-5555-555555555555"
      "66666666-6666-6666-6666-666666666666" = "66666666-6666-6666-6666-666666666666"
    }
    error_message = "Others may read secrets, or those may not who must."
  }

  assert {
    condition     = alltrue([for one in azurerm_role_assignment.reader : one.role_definition_name == "Key Vault Secrets User" && one.scope == "/vault"])
    error_message = "Who reads secrets may do more."
  }

  assert {
    condition     = azurerm_role_assignment.writer.principal_id == "22222222-2222-2222-2222-222222222222"
    error_message = "Somebody else than who runs this may write secrets."
  }

  assert {
    condition     = one(databricks_permissions.cluster[0].access_control).permission_level == "CAN_RESTART" && databricks_service_principal.lake[0].allow_cluster_create == false
    error_message = "The principal may do more in Databricks than use its cluster."
  }

  assert {
    condition = {
      for grant in [databricks_grant.catalog[0], databricks_grant.schema[0], databricks_grant.volume[0]] :
      coalesce(grant.catalog, grant.schema, grant.volume) => toset(grant.privileges) if grant.principal == "33333333-3333-3333-3333-333333333333"
      } == {
      "eventlake"                    = toset(["USE_CATALOG"])
      "eventlake.eventlake"          = toset(["USE_SCHEMA"])
      "eventlake.eventlake.packages" = toset(["READ_VOLUME", "WRITE_VOLUME"])
    }
    error_message = "The principal may do more in Unity Catalog than use its volume, or less."
  }

  assert {
    condition     = databricks_cluster.lake[0].single_user_name == "33333333-3333-3333-3333-333333333333"
    error_message = "The cluster is somebody else's."
  }
}

run "the_longest_names" {
  command = plan

  variables {
    name            = "a23456789-12345"
    storage_account = "a23456789012345678901234"
    container       = "a2345678-012345678-012345678-012345678-012345678-012345678-0123"
  }

  assert {
    condition     = length(azurerm_key_vault.lake.name) == 24 && can(regex("^[a-z][a-z0-9-]*[a-z0-9]$", azurerm_key_vault.lake.name))
    error_message = "Azure would refuse the name of the vault."
  }
}

run "an_older_metastore" {
  command = plan

  variables {
    mysql_version        = "5.7"
    mysql_allow_azure    = false
    mysql_firewall_rules = { office = { start = "203.0.113.7", end = "203.0.113.9" } }
  }

  assert {
    condition     = azurerm_mysql_flexible_server_configuration.metastore["lower_case_table_names"].value == "2"
    error_message = "Names of tables keep their case."
  }

  assert {
    condition     = azurerm_mysql_flexible_server_configuration.metastore["require_secure_transport"].value == "ON" && azurerm_mysql_flexible_database.metastore[0].charset == "utf8"
    error_message = "Connections are not encrypted, or the character set is called otherwise than in MySQL 5.7."
  }

  assert {
    condition     = keys(azurerm_mysql_flexible_server_firewall_rule.metastore) == ["office"] && azurerm_mysql_flexible_server_firewall_rule.metastore["office"].end_ip_address == "203.0.113.9"
    error_message = "The firewall lets others in."
  }
}

run "a_metastore_in_a_subnet" {
  command = plan

  variables {
    metastore_subnet_id           = "/subnet"
    metastore_private_dns_zone_id = "/zone"
    mysql_firewall_rules          = { office = { start = "203.0.113.7", end = "203.0.113.9" } }
  }

  assert {
    condition     = azurerm_mysql_flexible_server.metastore[0].public_network_access == "Disabled" && length(azurerm_mysql_flexible_server_firewall_rule.metastore) == 0
    error_message = "The server can be reached from outside."
  }
}

run "a_subnet_needs_a_zone" {
  command = plan

  variables {
    metastore_subnet_id = "/subnet"
  }

  expect_failures = [azurerm_mysql_flexible_server.metastore]
}

run "once_the_metastore_is_there" {
  command = plan

  variables {
    initialize_metastore = false
  }

  assert {
    condition = alltrue([
      databricks_cluster.lake[0].spark_conf["spark.hadoop.datanucleus.autoCreateSchema"] == "false",
      databricks_cluster.lake[0].spark_conf["spark.hadoop.datanucleus.schema.autoCreateTables"] == "false",
      databricks_cluster.lake[0].spark_conf["spark.hadoop.datanucleus.fixedDatastore"] == "true",
      databricks_cluster.lake[0].spark_conf["spark.hadoop.hive.metastore.schema.verification"] == "true",
    ])
    error_message = "The cluster would still change the metastore's tables."
  }
}

run "a_service_for_the_metastore" {
  command = plan

  variables {
    metastore_service = {
      image     = "lake.azurecr.io/metastore:3.1.3"
      subnet_id = "/services"
      registry  = { server = "lake.azurecr.io", identity_id = "/identity" }
    }
  }

  assert {
    condition     = output.metastore_uri == "thrift://10.0.0.4:9083" && strcontains(output.settings, "kind = \"hive\"\nuri = \"thrift://10.0.0.4:9083\"")
    error_message = "eventlake is not told of the service."
  }

  assert {
    condition     = databricks_cluster.lake[0].spark_conf["spark.hadoop.hive.metastore.uris"] == "thrift://10.0.0.4:9083" && !strcontains(jsonencode(databricks_cluster.lake[0].spark_conf), "jdo")
    error_message = "The cluster goes around the service."
  }

  assert {
    condition     = azurerm_container_group.metastore[0].ip_address_type == "Private" && toset(azurerm_container_group.metastore[0].subnet_ids) == toset(["/services"])
    error_message = "The service can be reached from outside."
  }

  assert {
    condition = azurerm_container_group.metastore[0].container[0].secure_environment_variables["SERVICE_OPTS"] == join(" ", [
      "-Djavax.jdo.option.ConnectionDriverName=com.mysql.cj.jdbc.Driver",
      "-Djavax.jdo.option.ConnectionPassword=the-password-of-the-server",
      "-Djavax.jdo.option.ConnectionURL=jdbc:mysql://lake.mysql.database.azure.com:3306/metastore?sslMode=REQUIRED",
      "-Djavax.jdo.option.ConnectionUserName=eventlake",
    ])
    error_message = "The service uses another database."
  }

  assert {
    condition     = azurerm_container_group.metastore[0].image_registry_credential[0].user_assigned_identity_id == "/identity" && azurerm_container_group.metastore[0].identity[0].type == "UserAssigned"
    error_message = "The image cannot be pulled."
  }
}

run "a_service_needs_its_server" {
  command = plan

  variables {
    create_metastore  = false
    metastore_service = { image = "metastore", subnet_id = "/services" }
  }

  expect_failures = [var.metastore_service]
}

run "an_older_runtime" {
  command = plan

  variables {
    spark_version  = "15.4.x-scala2.12"
    volume_catalog = "main"
  }

  assert {
    condition     = strcontains(output.settings, "python = \"python3.11\"") && output.volume == "/Volumes/main/eventlake/packages"
    error_message = "The package would not run there."
  }
}

run "tags" {
  command = plan

  variables {
    tags = { team = "data", vendor = "somebody" }
  }

  assert {
    condition = alltrue([
      for tags in [
        azurerm_resource_group.lake[0].tags,
        azurerm_storage_account.lake.tags,
        azurerm_key_vault.lake.tags,
        azurerm_key_vault_secret.principal.tags,
        azurerm_key_vault_secret.metastore["user"].tags,
        azurerm_mysql_flexible_server.metastore[0].tags,
        azurerm_databricks_workspace.lake[0].tags,
        databricks_cluster.lake[0].custom_tags,
      ] : tags == tomap({ team = "data", vendor = "eventlake" })
    ])
    error_message = "Something is not tagged."
  }

  assert {
    condition     = toset(azuread_application.lake.tags) == toset(["team=data", "vendor=eventlake"]) && toset(azuread_service_principal.lake.tags) == toset(["team=data", "vendor=eventlake"])
    error_message = "The principal is not tagged."
  }
}

run "settings" {
  command = plan

  variables {
    prefix        = "team/lake"
    metastore_uri = "thrift://metastore:9083"
  }

  assert {
    condition     = output.settings == <<-EOT
      runner = { kind = "databricks", host = "adb-1234567890123456.7.azuredatabricks.net", cluster_id = "0123-456789-abcdefgh", volume = "/Volumes/eventlake/eventlake/packages", python = "python3.12", tenant_id = "11111111-1111-1111-1111-111111111111", client_id = "33333333-3333-3333-3333-333333333333", client_secret = "keyvault://${azurerm_key_vault.lake.name}/spsecret" }

      [lake]
      root = "abfss://events@mycompanyevents.dfs.core.windows.net/team/lake"

      [azure]
      tenant_id = "11111111-1111-1111-1111-111111111111"
      client_id = "33333333-3333-3333-3333-333333333333"
      client_secret = "keyvault://${azurerm_key_vault.lake.name}/spsecret"

      [catalog]
      kind = "hive"
      uri = "thrift://metastore:9083"
    EOT
    error_message = "The settings do not fit."
  }

  assert {
    condition     = databricks_cluster.lake[0].spark_conf["spark.hadoop.hive.metastore.uris"] == output.metastore_uri && !strcontains(jsonencode(databricks_cluster.lake[0].spark_conf), "jdo")
    error_message = "The cluster looks elsewhere than eventlake."
  }

  assert {
    condition     = azurerm_storage_management_policy.lake.rule[0].filters[0].prefix_match == tolist(["events/team/lake/segment-stage/"])
    error_message = "The rule is for another folder."
  }
}

run "without_a_cluster" {
  command = plan

  variables {
    create_cluster   = false
    create_metastore = false
  }

  assert {
    condition     = length(azurerm_databricks_workspace.lake) + length(databricks_cluster.lake) + length(azurerm_mysql_flexible_server.metastore) == 0
    error_message = "There is a cluster, or a metastore."
  }

  assert {
    condition     = output.cluster_id == null && output.volume == null && output.workspace_url == null && output.metastore_host == null && startswith(output.settings, "[lake]") && !strcontains(output.settings, "[catalog]")
    error_message = "The settings name what is not there."
  }

  assert {
    condition     = keys(azurerm_role_assignment.reader) == ["principal"]
    error_message = "Databricks may read secrets without need."
  }
}

run "a_cluster_without_a_metastore" {
  command = plan

  variables {
    create_metastore = false
  }

  assert {
    condition     = length([for key in keys(databricks_cluster.lake[0].spark_conf) : key if strcontains(key, ".metastore.") || strcontains(key, "jdo") || strcontains(key, "datanucleus")]) == 0
    error_message = "Spark looks for a metastore that is not there."
  }
}

run "a_network_of_ones_own" {
  command = plan

  variables {
    allowed_ip_ranges  = ["203.0.113.7", "198.51.100.0/24"]
    allowed_subnet_ids = ["/public", "/private"]
    network = {
      virtual_network_id            = "/network"
      public_subnet_name            = "public"
      private_subnet_name           = "private"
      public_subnet_association_id  = "/public-group"
      private_subnet_association_id = "/private-group"
    }
  }

  assert {
    condition     = azurerm_storage_account.lake.network_rules[0].default_action == "Deny" && azurerm_key_vault.lake.network_acls[0].default_action == "Deny"
    error_message = "The lake can be reached from everywhere."
  }

  assert {
    condition     = azurerm_databricks_workspace.lake[0].custom_parameters[0].virtual_network_id == "/network" && azurerm_databricks_workspace.lake[0].custom_parameters[0].no_public_ip
    error_message = "The cluster is in another network."
  }
}

run "a_log_of_who_did_what" {
  command = plan

  variables {
    log_analytics_workspace_id = "/log"
  }

  assert {
    condition     = azurerm_monitor_diagnostic_setting.storage[0].target_resource_id == "/account/blobServices/default" && length(azurerm_monitor_diagnostic_setting.storage[0].enabled_log) == 3
    error_message = "Not all is logged."
  }

  assert {
    condition     = azurerm_monitor_diagnostic_setting.vault[0].target_resource_id == "/vault"
    error_message = "Nobody is told who reads secrets."
  }
}

run "a_resource_group_that_is_there" {
  command = plan

  variables {
    create_resource_group = false
    resource_group        = "theirs"
  }

  assert {
    condition     = length(azurerm_resource_group.lake) == 0 && azurerm_storage_account.lake.resource_group_name == "theirs"
    error_message = "A group that is there must be used, and left alone."
  }
}

run "what_azure_refuses_is_refused" {
  command = plan

  variables {
    name                  = "Event_Lake"
    location              = "West Europe"
    storage_account       = "My-Account"
    container             = "Events"
    prefix                = "/lake"
    replication           = "GRZ"
    deleted_days          = 0
    allowed_ip_ranges     = ["10.0.0.0/31"]
    secret_readers        = ["me"]
    secret_end_date       = "tomorrow"
    metastore_uri         = "http://host"
    metastore_database    = "Meta-Store"
    metastore_user        = "root"
    mysql_version         = "8"
    mysql_firewall_rules  = { office = { start = "203.0.113", end = "203.0.113.9" } }
    spark_version         = "13.3.x-scala2.12"
    volume_catalog        = "My Catalog"
    minimum_workers       = 0
    idle_minutes          = 5
    cluster_permission    = "IS_OWNER"
    create_resource_group = false
  }

  expect_failures = [
    var.name,
    var.location,
    var.storage_account,
    var.container,
    var.prefix,
    var.replication,
    var.deleted_days,
    var.allowed_ip_ranges,
    var.secret_readers,
    var.secret_end_date,
    var.metastore_uri,
    var.metastore_database,
    var.metastore_user,
    var.mysql_version,
    var.mysql_firewall_rules,
    var.spark_version,
    var.volume_catalog,
    var.minimum_workers,
    var.idle_minutes,
    var.cluster_permission,
  ]
}

run "the_most_are_not_fewer_than_the_fewest" {
  command = plan

  variables {
    minimum_workers = 4
    maximum_workers = 3
  }

  expect_failures = [var.maximum_workers]
}
