locals {
  # The application of Azure Databricks, the same in every tenant: it reads what secret scopes refer to.
  databricks_application = "2ff814a6-3304-4ab8-85cb-cd0e6f879c1d"

  scope = "eventlake"
  store = "${var.storage_account}.dfs.core.windows.net"

  storage_conf = {
    "spark.hadoop.fs.azure.account.auth.type.${local.store}"              = "OAuth"
    "spark.hadoop.fs.azure.account.oauth.provider.type.${local.store}"    = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
    "spark.hadoop.fs.azure.account.oauth2.client.endpoint.${local.store}" = "https://login.microsoftonline.com/${local.tenant}/oauth2/token"
    "spark.hadoop.fs.azure.account.oauth2.client.id.${local.store}"       = azuread_application.lake.client_id
    "spark.hadoop.fs.azure.account.oauth2.client.secret.${local.store}"   = "{{secrets/${local.scope}/${azurerm_key_vault_secret.principal.name}}}"
  }

  # The driver and the workers of a run are told no secret: this is who they are.
  node_identity = {
    AZURE_TENANT_ID     = local.tenant
    AZURE_CLIENT_ID     = azuread_application.lake.client_id
    AZURE_CLIENT_SECRET = "{{secrets/${local.scope}/${azurerm_key_vault_secret.principal.name}}}"
  }

  # By thrift where there is such a service, for it and the cluster may want tables of different versions; else by itself.
  metastore_conf = local.metastore_uri != null ? { "spark.hadoop.hive.metastore.uris" = local.metastore_uri } : local.by_itself
  by_itself = var.create_metastore ? {
    "spark.hadoop.javax.jdo.option.ConnectionDriverName" = "org.mariadb.jdbc.Driver"
    "spark.hadoop.javax.jdo.option.ConnectionURL"        = "jdbc:mysql://${azurerm_mysql_flexible_server.metastore[0].fqdn}:3306/${var.metastore_database}?useSSL=true&requireSSL=true&enabledSslProtocolSuites=TLSv1.2"
    "spark.hadoop.javax.jdo.option.ConnectionUserName"   = "{{secrets/${local.scope}/${azurerm_key_vault_secret.metastore["user"].name}}}"
    "spark.hadoop.javax.jdo.option.ConnectionPassword"   = "{{secrets/${local.scope}/${azurerm_key_vault_secret.metastore["password"].name}}}"
    "spark.sql.hive.metastore.version"                   = var.metastore_version
    "spark.sql.hive.metastore.jars"                      = "builtin"

    "spark.hadoop.datanucleus.autoCreateSchema"        = tostring(var.initialize_metastore)
    "spark.hadoop.datanucleus.schema.autoCreateTables" = tostring(var.initialize_metastore)
    "spark.hadoop.datanucleus.fixedDatastore"          = tostring(!var.initialize_metastore)
    "spark.hadoop.hive.metastore.schema.verification"  = tostring(!var.initialize_metastore)
  } : {}

  job_conf = {
    "spark.hive.mapred.supports.subdirectories"                        = "true"
    "spark.hadoop.mapreduce.input.fileinputformat.input.dir.recursive" = "true"
    "spark.sql.storeAssignmentPolicy"                                  = "Legacy"
    # Segment's guide has false: then Hive's own classes read, which do not know how Parquet has timestamps today.
    "spark.sql.hive.convertMetastoreParquet" = "true"
  }

  # Runtimes of 15.x have Python 3.11, later ones 3.12.
  python = startswith(var.spark_version, "15.") ? "python3.11" : "python3.12"

  volume_catalog = coalesce(var.volume_catalog, replace(var.name, "-", "_"))
}

resource "azurerm_databricks_workspace" "lake" {
  # checkov:skip=CKV_AZURE_158:nodes have no public addresses; a private link is for the owner of the network to decide
  # checkov:skip=CKV2_AZURE_48:the lake is not in the workspace's own storage
  count = var.create_cluster ? 1 : 0

  name                = var.name
  resource_group_name = local.group
  location            = var.location
  tags                = local.tags

  sku                               = "premium" # permissions on clusters and secrets need it
  infrastructure_encryption_enabled = true

  custom_parameters {
    no_public_ip                                         = true
    virtual_network_id                                   = try(var.network.virtual_network_id, null)
    public_subnet_name                                   = try(var.network.public_subnet_name, null)
    private_subnet_name                                  = try(var.network.private_subnet_name, null)
    public_subnet_network_security_group_association_id  = try(var.network.public_subnet_association_id, null)
    private_subnet_network_security_group_association_id = try(var.network.private_subnet_association_id, null)
  }
}

data "azuread_service_principal" "databricks" {
  count = var.create_cluster ? 1 : 0

  client_id = local.databricks_application
}

resource "databricks_secret_scope" "lake" {
  count = var.create_cluster ? 1 : 0

  name = local.scope

  keyvault_metadata {
    resource_id = azurerm_key_vault.lake.id
    dns_name    = azurerm_key_vault.lake.vault_uri
  }

  depends_on = [azurerm_role_assignment.reader]
}

resource "databricks_service_principal" "lake" {
  count = var.create_cluster ? 1 : 0

  application_id       = azuread_application.lake.client_id
  display_name         = var.name
  workspace_access     = true
  allow_cluster_create = var.allow_job_clusters
}

# Clusters that it makes for itself read the secrets in its name.
resource "databricks_secret_acl" "lake" {
  count = var.create_cluster ? 1 : 0

  scope      = databricks_secret_scope.lake[0].name
  principal  = databricks_service_principal.lake[0].application_id
  permission = "READ"
}

resource "databricks_cluster" "lake" {
  count = var.create_cluster ? 1 : 0

  cluster_name            = var.name
  spark_version           = var.spark_version
  node_type_id            = var.node_type
  data_security_mode      = "SINGLE_USER"
  single_user_name        = databricks_service_principal.lake[0].application_id
  autotermination_minutes = var.idle_minutes
  is_pinned               = true # or Databricks forgets it 30 days after it last ran
  spark_conf              = merge(local.storage_conf, local.metastore_conf, local.job_conf)
  spark_env_vars          = local.node_identity
  custom_tags             = local.tags

  enable_local_disk_encryption = true

  autoscale {
    min_workers = var.minimum_workers
    max_workers = var.maximum_workers
  }

  azure_attributes {
    availability       = "ON_DEMAND_AZURE"
    first_on_demand    = 1
    spot_bid_max_price = -1
  }

  depends_on = [
    azurerm_mysql_flexible_database.metastore,
    azurerm_mysql_flexible_server_configuration.metastore,
    azurerm_mysql_flexible_server_firewall_rule.metastore,
    databricks_secret_scope.lake,
  ]
}

resource "databricks_permissions" "cluster" {
  count = var.create_cluster ? 1 : 0

  cluster_id = databricks_cluster.lake[0].id

  access_control {
    service_principal_name = databricks_service_principal.lake[0].application_id
    permission_level       = var.cluster_permission
  }
}

# Where eventlake puts itself and its libraries, once per version: the cluster sees a volume as a folder.

resource "databricks_schema" "lake" {
  count = var.create_cluster ? 1 : 0

  catalog_name = local.volume_catalog
  name         = "eventlake"
  comment      = "What eventlake needs on clusters."
}

resource "databricks_volume" "packages" {
  count = var.create_cluster ? 1 : 0

  catalog_name = databricks_schema.lake[0].catalog_name
  schema_name  = databricks_schema.lake[0].name
  name         = "packages"
  volume_type  = "MANAGED"
  comment      = "eventlake and its libraries, by version."
}

resource "databricks_grant" "catalog" {
  count = var.create_cluster ? 1 : 0

  catalog    = local.volume_catalog
  principal  = databricks_service_principal.lake[0].application_id
  privileges = ["USE_CATALOG"]
}

resource "databricks_grant" "schema" {
  count = var.create_cluster ? 1 : 0

  schema     = "${databricks_schema.lake[0].catalog_name}.${databricks_schema.lake[0].name}"
  principal  = databricks_service_principal.lake[0].application_id
  privileges = ["USE_SCHEMA"]
}

resource "databricks_grant" "volume" {
  count = var.create_cluster ? 1 : 0

  volume     = join(".", [databricks_schema.lake[0].catalog_name, databricks_schema.lake[0].name, databricks_volume.packages[0].name])
  principal  = databricks_service_principal.lake[0].application_id
  privileges = ["READ_VOLUME", "WRITE_VOLUME"]
}
